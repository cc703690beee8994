"""A small arm of four joints over a table, held by motors."""

import mujoco
import numpy as np

from prism_motor.manipulation.environment import Physics

ARM = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <default>
    <joint armature="0.02" frictionloss="{friction}" damping="{damping}"/>
    <geom density="800" contype="0" conaffinity="0"/>
  </default>
  <worldbody>
    <geom name="table" type="box" size="1 1 0.05" pos="0 0 -0.05" contype="1" conaffinity="1"/>
    <body pos="0 0 0.3">
      <joint name="turn" axis="0 0 1"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.1" size="0.04"/>
      <body pos="0 0 0.1">
        <joint name="shoulder" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
        <body pos="0.3 0 0">
          <joint name="elbow" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.25 0 0" size="0.025"/>
          <body name="hand" pos="0.25 0 0">
            <joint name="wrist" axis="1 0 0"/>
            <geom name="ball" type="sphere" size="0.03" pos="0.05 0 0" contype="1" conaffinity="1"
             friction="0.1"/>
            <site name="tip" pos="0.05 0 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="turn"/><motor joint="shoulder"/><motor joint="elbow"/><motor joint="wrist"/>
  </actuator>
</mujoco>
"""

REST = np.array([0.2, -0.3, 0.9, 0.1])
PRESSING = np.array([0.2, 0.4, 0.9, 0.1])  # below the table's surface


class Arm:
    """The arm, held at joint angles by stiff motors that know nothing of gravity."""

    def __init__(self, friction=0.0, damping=0.0):
        self.model = mujoco.MjModel.from_xml_string(ARM.format(friction=friction, damping=damping))
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:] = REST
        mujoco.mj_forward(self.model, self.data)
        self.tip = self.model.site("tip").id
        self.hand = self.model.body("hand").id

    def hold(self, target=REST, seconds=3.0, stiffness=200.0):
        for _ in range(round(seconds / self.model.opt.timestep)):
            error = target - self.data.qpos
            self.data.ctrl[:] = stiffness * error - 0.2 * stiffness**0.5 * self.data.qvel
            mujoco.mj_step(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)

    def push(self, force):
        """Let a force act on the tip from now on."""
        arm = self.data.site_xpos[self.tip] - self.data.xipos[self.hand]
        self.data.xfrc_applied[self.hand] = [*force, *np.cross(arm, force)]

    def physics(self):
        model, data = self.model, self.data
        jacobian = np.zeros((6, model.nv))
        mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], self.tip)
        force = np.zeros(3)
        for i in range(data.ncon):
            local = np.zeros(6)
            mujoco.mj_contactForce(model, data, i, local)
            world = data.contact[i].frame.reshape(3, 3).T @ local[:3]  # on the second geom
            on_ball = data.contact[i].geom[1] == model.geom("ball").id
            force += world if on_ball else -world
        return Physics(
            position=data.site_xpos[self.tip].copy(),
            quaternion=np.array([1.0, 0, 0, 0]),
            velocity=jacobian @ data.qvel,
            jacobian=jacobian,
            joint_positions=data.qpos.copy(),
            joint_velocities=data.qvel.copy(),
            joint_torques=data.qfrc_actuator.copy(),
            bias_torques=data.qfrc_bias.copy(),
            contact_force=force,
            largest_force=float(np.linalg.norm(force)),
        )
